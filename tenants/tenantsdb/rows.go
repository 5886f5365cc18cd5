package tenantsdb

// each converts each row.
func each[R, T any](rows []R, to func(*R) T) []T {
	made := make([]T, len(rows))
	for i := range rows {
		made[i] = to(&rows[i])
	}
	return made
}
