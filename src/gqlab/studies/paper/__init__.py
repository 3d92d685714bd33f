"""The paper, reproduced: experiments as data, one runner, figures, claims with verdicts, one report.

The data's way, one file each:

    experiments (data) ─► runner ─► store (results on disk) ─► panels ─► figures
                                                       └─────► claims ─► report
"""
