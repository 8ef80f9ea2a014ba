"""Loop bodies: what the analysis proves of them, and how they are compiled and kept."""
