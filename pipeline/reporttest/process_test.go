package reporttest

import (
	"os"
	"os/exec"
	"testing"
)

func TestTimeOfAFamilyHasThatOfEndedChildren(t *testing.T) {
	t.Parallel()

	if Parent(os.Getpid()) != os.Getppid() || Parent(0) != 0 || CPUTime(0) != 0 || FamilyCPUTime(0) != 0 {
		t.Errorf("parent %d, want %d; of process 0: %v, %v", Parent(os.Getpid()), os.Getppid(), CPUTime(0), FamilyCPUTime(0))
	}
	for range 1000 { // until the clock has ticked in a child
		if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done").Run(); err != nil {
			t.Fatal(err)
		}
		own := CPUTime(os.Getpid())
		if children := FamilyCPUTime(os.Getpid()) - own; children > 0 && own == CPUTime(os.Getpid()) {
			return
		}
	}
	t.Error("children took no time")
}
