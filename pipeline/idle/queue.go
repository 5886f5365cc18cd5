package idle

import (
	"container/heap"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// task is a lane whose next epoch may be worth planning.
type task struct {
	lane    uuid.UUID
	heat    session.Heat // of the prompt that it is planned for
	outline *pipeline.Outline
	due     time.Time

	at int // place in the queue
}

// queue holds tasks, the one that is due first at the top.
type queue []*task

// Len implements heap.Interface.
func (q *queue) Len() int { return len(*q) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool { return (*q)[i].due.Before((*q)[j].due) }

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) {
	tasks := *q
	tasks[i], tasks[j] = tasks[j], tasks[i]
	tasks[i].at, tasks[j].at = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(next any) {
	added := next.(*task) //nolint:forcetypeassert // only waiting pushes
	added.at = len(*q)
	*q = append(*q, added)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// waiting are the tasks of all lanes, at most one of each.
type waiting struct {
	queue  queue
	byLane map[uuid.UUID]*task
}

// put adds a task in place of its lane's earlier one. It returns false if there
// are too many.
func (w *waiting) put(next *task, limit int) bool {
	if known, ok := w.byLane[next.lane]; ok {
		next.at = known.at
		w.queue[known.at] = next
		w.byLane[next.lane] = next
		heap.Fix(&w.queue, next.at)
		return true
	}
	if len(w.queue) >= limit {
		return false
	}
	w.byLane[next.lane] = next
	heap.Push(&w.queue, next)
	return true
}

// take returns the task that is due first, if it is due; nil if none is.
func (w *waiting) take(now time.Time) *task {
	if len(w.queue) == 0 || w.queue[0].due.After(now) {
		return nil
	}
	first := heap.Pop(&w.queue).(*task) //nolint:forcetypeassert // only put pushes
	delete(w.byLane, first.lane)
	return first
}
