package tuning

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// curvePart is the value of part that asks for the curve alone.
const curvePart = "curve"

// curveContexts are the values of ipc.minContext that the curve has, the cheapest first.
var curveContexts = []int{25_000, 50_000, 100_000, 200_000}

// curvePoint is what one value of ipc.minContext makes of the sessions.
type curvePoint struct {
	MinContext int
	preview.Figures
}

// curve replays the sessions with "Spend less" at each value of minContext, beside all else
// that was typed.
func (p *Previewer) curve(ctx context.Context, who tenants.Principal, picked session.Picked, saved, wanted pipeline.Config) ([]curvePoint, error) {
	if !wanted.Runs("ipc") {
		return nil, nil
	}
	wanted.IPC.Trigger = pipeline.TriggerBreakEven
	points := make([]curvePoint, len(curveContexts))
	for i, minContext := range curveContexts {
		wanted.IPC.MinContext = minContext
		found, err := p.compares.Compare(ctx, who.Workspace.ID, picked, saved, wanted)
		if err != nil {
			return nil, fmt.Errorf("minContext %d: %w", minContext, err)
		}
		points[i] = curvePoint{minContext, found.Wanted}
	}
	return points, nil
}

// label is the point's value of minContext.
func (c curvePoint) label() string { return components.Short(int64(c.MinContext)) }

// cost is what prompts would have cost as a share of what they cost untouched; 1 where they
// cost nothing.
func (c curvePoint) cost() float64 {
	if untouched := c.Cost + c.Net; untouched > 0 {
		return float64(c.Cost) / float64(untouched)
	}
	return 1
}

// fidelity is the share of the prompts that the model would have read word for word.
func (c curvePoint) fidelity() float64 {
	if c.Received == 0 {
		return 1
	}
	return float64(c.Verbatim) / float64(c.Received)
}

// saving says by how much prompts would have been cheaper or dearer.
func (c curvePoint) saving() string {
	percent := 100 * (c.cost() - 1)
	if percent <= 0 {
		return fmt.Sprintf("−%.1f %%", -percent)
	}
	return fmt.Sprintf("+%.1f %%", percent)
}

// kept says how much the model would have read word for word.
func (c curvePoint) kept() string { return fmt.Sprintf("%.1f %%", 100*c.fidelity()) }

// The picture of the curve, in its own units: cost to the right, fidelity up.
const (
	curveWidth, curveHeight = 320, 150
	curveLeft, curveBottom  = 34, 24
	curveMargin             = 12
)

// x is where the point stands in the picture.
func (c curvePoint) x() string {
	width := float64(curveWidth - curveLeft - 2*curveMargin)
	return place(curveLeft + curveMargin + width*min(c.cost(), 1))
}

// y is how high the point stands in the picture.
func (c curvePoint) y() string {
	height := float64(curveHeight - curveBottom - 2*curveMargin)
	return place(curveMargin + height*(1-c.fidelity()))
}

func place(at float64) string { return strconv.FormatFloat(at, 'f', 1, 64) }

// curveLine joins the points.
func curveLine(points []curvePoint) string {
	places := make([]string, len(points))
	for i, point := range points {
		places[i] = point.x() + "," + point.y()
	}
	return strings.Join(places, " ")
}
