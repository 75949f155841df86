package consumer

import (
	"context"
	"time"
)

// keptBackEvery is how often it is looked for tickets that are kept back for a cancel which has ended.
const keptBackEvery = time.Minute

// wakeKeptBack mends such tickets until ctx ends: whoever ends a cancel makes its charge due, and what a fault has left would be given to nobody.
func (w *Worker) wakeKeptBack(ctx context.Context) {
	if w.Processor.FollowUps == nil {
		return
	}
	for wait(ctx, keptBackEvery/2+time.Duration(w.Random(int64(keptBackEvery)))) {
		if !w.held() { // a database that was restored may have forgotten the cancel
			w.wakeKeptBackOnce(ctx)
		}
	}
}

func (w *Worker) wakeKeptBackOnce(ctx context.Context) {
	defer w.survive()
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	n, err := w.Processor.FollowUps.WakeKeptBack(bounded)
	if n > 0 {
		w.Log.Warn("payments were kept back for cancels that have ended; they go on", "payments", n)
		for _, d := range w.dues {
			d.wakeUp()
		}
	}
	if err != nil && ctx.Err() == nil && w.seldom.now("kept back", w.Clock.Now()) {
		w.Log.Warn("it could not be looked for payments that are kept back for nothing; it is tried again", "error", err)
	}
}
