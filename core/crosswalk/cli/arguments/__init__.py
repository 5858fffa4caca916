"""What can be typed on the command line. Importing it loads no command."""
