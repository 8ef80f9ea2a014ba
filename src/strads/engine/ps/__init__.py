"""The parameter server: shards of tables on the nodes, and clients that cache their rows (ESSP, "ESSPTable").

The consistency models, and so what distinguishes SSP from ESSP, are in `schedule/consistency.py`.
"""
