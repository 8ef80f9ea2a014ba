"""The parameter server: shards of tables on the nodes, and clients that cache their rows (ESSP, "ESSPTable")."""
