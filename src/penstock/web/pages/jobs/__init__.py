"""Pages about programs that work on streams, in NiceGUI.

pipeline       /pipeline
pipeline_flow  pipelines as flows
redrive        the dialog that sends rejects back
workers        /workers
dead_letters   the dead letters of a stream
"""
