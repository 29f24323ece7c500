"""Changes: planned, shown to the user, then made.

entry_changes  add, delete and trim entries
group_changes  create, move and delete groups; acknowledge; claim
dead_letters   gives dead letters back to their groups
editing        fields in text boxes
resend         adds an edited entry, or rejects, again
"""
