package identity

// MaxHashing is how many passwords are hashed at once, at most.
const MaxHashing = maxHashing

// Hashing returns how many passwords are hashed at once with so many processors.
func Hashing(processors int) int { return hashing(processors) }

// MaxWaiting is how many people's passwords may wait to be hashed.
const MaxWaiting = maxWaiting

// Occupy takes every slot in which a password is hashed, until release is called.
func (s *Service) Occupy() (release func()) {
	for range cap(s.passwords.slots) {
		s.passwords.slots <- struct{}{}
	}
	return func() {
		for range cap(s.passwords.slots) {
			<-s.passwords.slots
		}
	}
}

// Runs returns how many passwords were hashed or compared.
func (s *Service) Runs() int64 { return s.passwords.runs.Load() }

// Work returns how much work that was, in KiB times passes.
func (s *Service) Work() int64 { return s.passwords.work.Load() }

// MostAtOnce returns how many at most were so at the same time.
func (s *Service) MostAtOnce() int64 { return s.passwords.most.Load() }

// HashMemory is the memory of a hash in the product, in KiB.
const HashMemory = hashMemory

// HashWith sets the memory of each new hash, in KiB.
func (s *Service) HashWith(memory uint32) error { return s.passwords.hashWith(memory) }
