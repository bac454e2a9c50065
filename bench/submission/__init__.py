"""What is handed in and what is made of it: checked and packed by its author, verified by others."""
