"""Records that leave a machine and arrive on another.

A folder is carried by rsync, rclone or `aws s3 sync`; a bundle is one signed file for the leaderboard.
"""

__figures__ = False
