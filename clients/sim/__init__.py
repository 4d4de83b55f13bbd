"""A lock service, its network and its clients in virtual time (see ``world.build``)."""
