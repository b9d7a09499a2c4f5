"""The common parts of the local pages: server, guard against foreign requests, images."""
