package main

import "golang.org/x/sys/windows"

// freeSpace returns how many bytes are free where a folder lies.
func freeSpace(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}

// mostFiles says that Windows has no such limit.
func mostFiles() (files uint64, known bool) { return 0, false }
