"""The pages that commands write as HTML."""
