"""The chest phantom of `synth-cxr`: a person's anatomy, X-ray attenuation, exposed film.

Everything is drawn from seeds; no film shows a real person.
"""
