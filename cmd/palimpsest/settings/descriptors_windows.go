package settings

// mostFiles returns no limit because Windows has none for open files.
func mostFiles() (files uint64, known bool) { return 0, false }
