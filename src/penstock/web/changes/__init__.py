"""Changes: planned first, shown to the user, then made.

entry_changes  add, delete and trim entries
group_changes  create, move and delete groups; acknowledge; claim
editing        fields in text boxes
resend         sends an entry or rejects again
"""
