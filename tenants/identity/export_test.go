package identity

// Runs returns how many passwords were hashed or compared.
func (s *Service) Runs() int64 { return s.passwords.runs.Load() }

// MostAtOnce returns how many at most were so at the same time.
func (s *Service) MostAtOnce() int64 { return s.passwords.most.Load() }
