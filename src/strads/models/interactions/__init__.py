"""Who chose what: users and items by the ids that people have for them, and tables that hold them."""
