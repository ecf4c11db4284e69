"""Work that hangs is stopped: deadlines, and guards that interrupt work that does not yield."""
