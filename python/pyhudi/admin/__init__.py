"""Administration: upgrade, restore, check, repair, running services, health.

Nothing here runs unless a caller requests it.
"""
