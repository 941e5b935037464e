//go:build !kubernetes134

package exporter

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	entries "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var look = flag.String("look", "", "write pictures of the page to a directory, to look at them")

// browser is a Chromium with one page, and what it has complained about and asked for.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	asked      []string
}

// newBrowser starts a Chromium, for which flags may be added. It ends with the test.
func newBrowser(t *testing.T, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to run this, but there is no chromium; it comes with the package of that name")
		}
		t.Skip("SKIPPED: there is no chromium; it comes with the package of that name")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(options, flags...)...)
	t.Cleanup(stop)
	ctx, shut := chromedp.NewContext(ctx)
	t.Cleanup(shut)
	b := &browser{t: t, ctx: ctx}
	b.do("start") // and only what is started can be listened to
	must(t, chromedp.Listen(ctx, b.hear))
	must(t, tell(ctx, entries.Enable), tell(ctx, network.Enable), tell(ctx, runtime.Enable))
	return b
}

// tell gives the browser a command that needs no more than its name.
func tell[P, R any](ctx context.Context, command cdp.Command[P, R]) error {
	var none P
	_, err := chromedp.Call(ctx, command, none)
	return err
}

// hear notes what the page asks for and what goes wrong with it. A breach of the content policy is
// an entry of the log.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *entries.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console %s", e.Type))
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %s", e.ExceptionDetails.Text))
	}
}

// before has a script run in each page before its own.
func (b *browser) before(script string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	must(b.t, err)
}

// requests is how often something was asked for.
func (b *browser) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// value is what an expression in the page comes to.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%.60s: %v", expression, err)
	}
	return v
}

// await waits until an expression in the page is true.
func (b *browser) await(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(40*time.Second))); err != nil {
		b.t.Fatalf("wait for %s: %v", expression, err)
	}
}

// scheme makes the page light or dark.
func (b *browser) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	must(b.t, err)
}

// picture writes what is to be seen, for people.
func (b *browser) picture(name string) {
	b.t.Helper()
	if *look == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	must(b.t, err)
	must(b.t, os.WriteFile(filepath.Join(*look, name+".png"), png, 0o644))
}

// clean wants the page to have kept to itself: no complaint, and no question to anybody else.
func (b *browser) clean(address string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the browser complains: %s", c)
	}
	home, err := url.Parse(address)
	must(b.t, err)
	for _, of := range b.asked {
		if u, err := url.Parse(of); err != nil || u.Host != home.Host {
			b.t.Errorf("the page asks %s", of)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("the page was not asked for")
	}
}
