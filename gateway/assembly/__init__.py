"""The composition root: these modules create the parts of a message's path and connect them."""
