package limits

// Held returns how many requests under way are renewed in Redis.
func (l *Limiter) Held() int { return len(l.held()) }
