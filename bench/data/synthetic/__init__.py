"""The chest phantom behind `synth-cxr`."""
