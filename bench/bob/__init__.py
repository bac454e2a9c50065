"""Bob, who trains a model on a release.

Views, recipes, training and the choice among trained models.
"""

__figures__ = True
