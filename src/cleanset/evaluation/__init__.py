"""What is measured with scores and pictures beside the pipeline."""
