"""The metadata table of Hudi, below `.hoodie/metadata`: reading it for the planning of scans."""
