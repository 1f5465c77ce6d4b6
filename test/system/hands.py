"""What a person does with a page: fills in, presses, reads.  Elements are found by what they are called on the screen."""
import json

# An expression: the element that has this text, or this label, among those that are matched.
WORDS = "one.textContent.trim().replace(/\\s+/g, ' ')"
BY_TEXT = f'[...document.querySelectorAll({{selector}})].find((one) => ({WORDS} === {{text}} || one.ariaLabel === {{text}}) && !one.closest("[hidden]"))'
BY_LABEL = f'[...document.querySelectorAll("label")].find((one) => {WORDS} === {{text}} && !one.closest("[hidden]"))?.control'

# Watches what the policy has prevented, from the beginning of each page.
WATCH = "window.prevented = []; addEventListener('securitypolicyviolation', (event) => prevented.push(`${event.violatedDirective} ${event.blockedURI}`))"


class Hands:
    def __init__(self, tab):
        self.tab = tab

    def element(self, text, selector='button, a, summary'):
        return BY_TEXT.format(selector=json.dumps(selector), text=json.dumps(text))

    def act(self, element, deed):
        """As soon as the element is there and enabled, and before the page can replace it."""
        self.tab.until(f'(() => {{ const one = {element}; if (!one || one.disabled) return false; {deed}; return true }})()')

    def click(self, text, selector='button, a, summary'):
        self.act(self.element(text, selector), 'one.click()')

    def fill(self, label, value):
        """As typed: the page sees the event of each element."""
        self.act(BY_LABEL.format(text=json.dumps(label)), f'''
            const kind = {{ INPUT: HTMLInputElement, TEXTAREA: HTMLTextAreaElement, SELECT: HTMLSelectElement }}[one.tagName]
            Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(one, {json.dumps(value)})
            one.dispatchEvent(new Event(one.tagName === 'SELECT' ? 'change' : 'input', {{ bubbles: true }}))''')

    def shows(self, text, selector='main'):
        """Waits until the text is part of the page."""
        self.tab.until(f'[...document.querySelectorAll({json.dumps(selector)})].some((one) => one.innerText.includes({json.dumps(text)}))')

    def misses(self, text, selector='main'):
        self.tab.until(f'![...document.querySelectorAll({json.dumps(selector)})].some((one) => one.innerText.includes({json.dumps(text)}))')


class Keyboard:
    def __init__(self, tab):
        self.tab = tab

    def press(self, key, code=0, text='', shift=False):
        for kind in ('keyDown', 'keyUp'):
            self.tab.call('Input.dispatchKeyEvent', type=kind, modifiers=8 if shift else 0, key=key, code=key, windowsVirtualKeyCode=code, **({'text': text} if kind == 'keyDown' and text else {}))

    def type(self, text):
        self.tab.call('Input.insertText', text=text)

    def enter(self):
        self.press('Enter', 13, '\r')

    def reach(self, words, most=60, back=False):
        """Tabs, or goes back, to the element with these words, or this label; it has a mark of the focus."""
        for _ in range(most):
            self.press('Tab', 9, shift=back)
            if self.tab.run('''(() => { const one = document.activeElement
                return (one.ariaLabel ?? one.labels?.[0]?.textContent ?? one.textContent).split(/\\s+/).filter(Boolean).join(' ') })()''') == words:
                assert self.tab.run('getComputedStyle(document.activeElement).outlineStyle') != 'none'
                return
        raise AssertionError(f'no Tab leads to {words}')


class People:
    """Each has a browser of its own, and does what the lines of a block `browser NAME` say, one after the other."""

    def __init__(self, start):
        self.start, self.hands = start, {}

    def __getitem__(self, name):
        if name not in self.hands:
            self.hands[name] = Hands(self.start().open('about:blank', is_ready='true'))
        return self.hands[name]

    def seen(self, words):
        """What another one has on the screen, or the words themselves."""
        for name, hands in self.hands.items():
            if words == f"{name}'s address":
                return hands.tab.run('location.href')
            if words == f"{name}'s account":
                return hands.tab.until('document.getElementById("account")?.textContent')  # once the account is there
        return words

    def do(self, name, line):
        hands, (what, words) = self[name], line.split(' ', 1)
        if what == 'open':
            hands.tab.call('Page.navigate', url='about:blank')
            hands.tab.go(self.seen(words), is_ready='location.href !== "about:blank"')
        elif what == 'fill':
            label, value = words.split(': ', 1)
            hands.fill(label, self.seen(value))
        elif what == 'press':
            hands.click(words)
        elif what == 'tick':
            hands.act(BY_LABEL.format(text=json.dumps(words)), 'one.click()')
        elif what == 'see' and words.startswith('ticked '):
            hands.tab.until(f'{BY_LABEL.format(text=json.dumps(words.removeprefix("ticked ")))}.checked')
        elif what == 'see':
            hands.shows(words, 'body')
        elif what == 'miss':
            hands.misses(words, 'body')
        elif what == 'go':
            hands.tab.network({'online': True, 'offline': False}[words])
        else:
            raise AssertionError(f'{line}: there is no such step')
