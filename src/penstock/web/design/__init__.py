"""How the dashboard looks: the only place with colours, sizes and styles.

colours  all colours, in light and dark
scale    spacing and type sizes
style    the CSS of every page
"""
