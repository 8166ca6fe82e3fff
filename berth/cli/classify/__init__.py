"""``berth classify``: interference classes and WorkloadProfiles from run times.

``reading`` (files of run times), ``document`` (what was found), ``tables`` (the same for people, with a plot),
``profiles`` (manifests), ``command``.
"""
