"""The pages of the site, a file a kind: each gives `Page`s, which are drawn only where what they show has changed."""
