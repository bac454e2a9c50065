"""The tree of PadChest's labels: which of them are kinds of another.

The table gives an image its most special labels alone: a row labelled `laminar atelectasis` does not say `atelectasis`.
The tree is that of the authors' published list of labels (Bustos et al. 2020), without localizations, and without the
labels that were added for COVID-19 later.
"""

from __future__ import annotations

from collections.abc import Mapping

_BELOW: Mapping[str, tuple[str, ...]] = {
    "calcified densities": (
        "calcified granuloma", "calcified adenopathy", "calcified pleural thickening", "calcified pleural plaques",
        "heart valve calcified", "calcified fibroadenoma",
    ),
    "calcified adenopathy": ("calcified mediastinal adenopathy",),
    "granuloma": ("calcified granuloma",),
    "adenopathy": ("calcified adenopathy",),
    "nodule": ("multiple nodules",),
    "pseudonodule": ("nipple shadow", "end on vessel"),
    "pneumothorax": ("hydropneumothorax",),
    "infiltrates": ("interstitial pattern", "alveolar pattern"),
    "interstitial pattern": (
        "ground glass pattern", "reticular interstitial pattern", "reticulonodular interstitial pattern",
        "miliary opacities",
    ),
    "alveolar pattern": ("consolidation", "air bronchogram"),
    "consolidation": ("air bronchogram",),
    "atelectasis": (
        "total atelectasis", "lobar atelectasis", "segmental atelectasis", "laminar atelectasis", "round atelectasis",
        "atelectasis basal",
    ),
    "fissure thickening": ("minor fissure thickening", "major fissure thickening", "loculated fissural effusion"),
    "pleural thickening": ("apical pleural thickening", "calcified pleural thickening"),
    "pleural plaques": ("calcified pleural plaques",),
    "pleural effusion": (
        "loculated pleural effusion", "loculated fissural effusion", "hydropneumothorax", "empyema", "hemothorax",
    ),
    "vascular redistribution": ("central vascular redistribution",),
    "hilar enlargement": ("adenopathy", "vascular hilar enlargement"),
    "vascular hilar enlargement": ("pulmonary artery enlargement",),
    "aortic elongation": (
        "descendent aortic elongation", "ascendent aortic elongation", "aortic button enlargement",
        "supra aortic elongation",
    ),
    "mediastinal enlargement": (
        "superior mediastinal enlargement", "descendent aortic elongation", "ascendent aortic elongation",
        "aortic aneurysm", "mediastinal mass", "hiatal hernia",
    ),
    "superior mediastinal enlargement": ("goiter", "supra aortic elongation"),
    "mass": ("mediastinal mass", "breast mass", "pleural mass", "pulmonary mass", "soft tissue mass"),
    "thoracic cage deformation": ("scoliosis", "kyphosis", "pectum excavatum", "pectum carinatum", "cervical rib"),
    "vertebral degenerative changes": ("vertebral compression",),
    "vertebral compression": ("vertebral anterior compression",),
    "sclerotic bone lesion": ("blastic bone lesion",),
    "fracture": ("clavicle fracture", "humeral fracture", "vertebral fracture", "rib fracture"),
    "rib fracture": ("callus rib fracture",),
    "catheter": ("central venous catheter",),
    "central venous catheter": (
        "central venous catheter via subclavian vein", "central venous catheter via jugular vein",
        "reservoir central venous catheter", "central venous catheter via umbilical vein",
    ),
    "electrical device": ("dual chamber device", "single chamber device", "pacemaker", "dai"),
    "artificial heart valve": ("artificial mitral heart valve", "artificial aortic heart valve"),
    "surgery": (
        "metal", "bone cement", "prosthesis", "surgery breast", "surgery neck", "surgery lung", "surgery heart",
        "surgery humeral",
    ),
    "metal": ("osteosynthesis material", "sternotomy", "suture material"),
    "prosthesis": ("humeral prosthesis", "mammary prosthesis", "endoprosthesis"),
    "endoprosthesis": ("aortic endoprosthesis",),
    "surgery breast": ("mastectomy",),
    "pneumonia": ("atypical pneumonia",),
    "tuberculosis": ("tuberculosis sequelae",),
    "pulmonary fibrosis": ("post radiotherapy changes", "asbestosis signs"),
    "pulmonary hypertension": ("pulmonary artery hypertension", "pulmonary venous hypertension"),
}  # fmt: skip


def kinds(label: str) -> frozenset[str]:
    """The label itself and all that are kinds of it, in small letters.

    >>> sorted(kinds("alveolar pattern"))
    ['air bronchogram', 'alveolar pattern', 'consolidation']
    """
    word = label.lower()
    return frozenset({word}).union(*map(kinds, _BELOW.get(word, ())))
