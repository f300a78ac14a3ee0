"""placeholder, replaced

x
y
"""
