"""The local page: what the assistant knows, in a browser on the person's own machine.

A browser's request takes this path: `server.py` checks host, origin, login and form token. It finds
the `View` or the `Action` of the address, and calls it with a `PageRequest`, which says who looks
and what that person may see. A view returns values for its template. An action changes something by
running the same command as a chat, so every change passes the same gate and has the same receipt.

How to add a page:

1. Write a module such as `today.py`. It has a function for each view, which returns the values of
   the template, or None if there is no such thing for this person::

       async def load_today(request: PageRequest) -> Values | None:
           pending = await request.services.notebook.review.list_pending(request.scopes)
           return {"pending": pending}

       PAGE = Page(
           "today",
           views=(View("/today", "today.html", load_today),),
           actions=(Action("approve-change", run_command("memory", "approve {number}")),),
       )

2. Write `templates/today.html`. It extends `layout.html`, and fills the block `content`. Everything
   is escaped. `t.KEY` is a text of the table `[page_today]` or `[page]` in `gateway/texts/`. The
   macros in `parts.html` make forms:
   ``{{ form("approve-change", t.APPROVE, number=note.id) }}``. Inline styles and scripts don't
   work, because the browser is told to refuse them.

3. Add `PAGE` to `PAGES` in `pages.py`, and the template to the list in
   `gateway/installation.py`. All languages get the text `NAV_TODAY` in the table `[page]`, and the
   other texts of the page in a table `[page_today]`.

A view reads only with `request.scopes`, and reads a limited number of rows.
"""
