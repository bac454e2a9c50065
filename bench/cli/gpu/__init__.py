"""The parts of `bench gpu-check`: conformance, figures beside the CPU's, speed, and the table of it all."""
