# SPDX-License-Identifier: GPL-2.0-or-later
"""Provider `slurm`: the nodes of a job's allocation, reached by srun(1)."""
