package server

// RepliesLost returns how many direct replies were lost because their client did not read fast enough.
func (s *Server) RepliesLost() uint64 { return s.Totals.RepliesLost.Load() }
