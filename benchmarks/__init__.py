"""What speed and memory are promised by; `make bench` prints the figures."""
