"""What any local page of this project needs: who may talk to it, and its images."""
