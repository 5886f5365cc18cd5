package main

import "testing"

func TestRoleIsOneOfFour(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ works, proxies, shows bool }{
		"all":    {true, true, true},
		"web":    {false, false, true},
		"api":    {false, true, false},
		"worker": {true, false, false},
	} {
		role, err := roleOf(name)
		if err != nil || role.works() != want.works || role.proxies() != want.proxies || role.shows() != want.shows {
			t.Errorf("%s: %v %v %v (%v)", name, role.works(), role.proxies(), role.shows(), err)
		}
	}
	for _, name := range []string{"", "ALL", "jobs"} {
		if _, err := roleOf(name); err == nil {
			t.Errorf("role %q was taken", name)
		}
	}
}
