package settings

import "testing"

func TestRoleIsOneOfFour(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ works, proxies, shows bool }{
		"all":    {true, true, true},
		"web":    {false, false, true},
		"api":    {false, true, false},
		"worker": {true, false, false},
	} {
		role, err := RoleOf(name)
		if err != nil || role.Works() != want.works || role.Proxies() != want.proxies || role.Shows() != want.shows {
			t.Errorf("%s: %v %v %v (%v)", name, role.Works(), role.Proxies(), role.Shows(), err)
		}
	}
	for _, name := range []string{"", "ALL", "jobs"} {
		if _, err := RoleOf(name); err == nil {
			t.Errorf("role %q was taken", name)
		}
	}
}
