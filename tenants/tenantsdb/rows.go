package tenantsdb

// each returns what to makes of each row.
func each[R, T any](rows []R, to func(*R) T) []T {
	made := make([]T, len(rows))
	for i := range rows {
		made[i] = to(&rows[i])
	}
	return made
}
