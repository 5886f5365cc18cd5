package limits

// Held returns how many requests under way are renewed in Redis.
func (l *Limiter) Held() int { return len(l.running()) }

// Known returns of how many subjects this process remembers what they have used.
func (l *Limiter) Known() int {
	l.local.mu.Lock()
	defer l.local.mu.Unlock()
	return len(l.local.subjects)
}
