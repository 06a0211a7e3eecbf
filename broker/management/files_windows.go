package management

// filesLimit: Windows has no limit on open files and sockets.
func filesLimit() int { return 0 }
