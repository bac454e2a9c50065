"""The numbers of a board in the forms that others take them in: tables, a static API, badges, a feed, citations."""
