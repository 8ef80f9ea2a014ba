"""Training on knowledge graphs: facts, blocks of entities, the program of the Static Engine, and ranking."""
