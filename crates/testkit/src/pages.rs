//! Lists that are read to their end, page by page.

/// Pages of one list that a test reads at most: more than any test has entries.
pub const PAGES_MAX: usize = 100_000;

/// The pages of a list that is read to its end: a token for each request, the empty one first.
///
/// ```
/// # use switchward_testkit::Pages;
/// let mut pages = Pages::default();
/// while let Some(token) = pages.next_token() {
///     // A list request with this token.
///     pages.read(if token.is_empty() { "second page".to_owned() } else { String::new() });
/// }
/// ```
#[derive(Debug)]
pub struct Pages {
    next: Option<String>,
    read: usize,
}

impl Default for Pages {
    /// Starts with the first page.
    fn default() -> Self {
        Self { next: Some(String::new()), read: 0 }
    }
}

impl Pages {
    /// Continues after a page that came with this `next_page_token`.
    #[must_use]
    pub fn after(next_page_token: String) -> Self {
        let mut pages = Self::default();
        pages.read(next_page_token);
        pages
    }

    /// Returns the token of the page to request; `None` after the last page.
    ///
    /// # Panics
    /// [`PAGES_MAX`] pages have been read, and there are more: the server returns tokens without end.
    pub fn next_token(&mut self) -> Option<String> {
        assert!(self.next.is_none() || self.read < PAGES_MAX, "a list has more than {PAGES_MAX} pages");
        self.next.take()
    }

    /// Records that a page was read that came with this `next_page_token`; the empty one comes with the last page.
    pub fn read(&mut self, next_page_token: String) {
        self.read += 1;
        self.next = Some(next_page_token).filter(|token| !token.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn a_list_ends_with_the_page_without_a_token() {
        let mut pages = Pages::default();
        assert_eq!(pages.next_token().as_deref(), Some(""));
        pages.read("b".into());
        assert_eq!(pages.next_token().as_deref(), Some("b"));
        pages.read(String::new());
        assert_eq!(pages.next_token(), None);
        assert_eq!(Pages::after(String::new()).next_token(), None);
        assert_eq!(Pages::after("b".into()).next_token().as_deref(), Some("b"));
    }

    #[test]
    #[should_panic(expected = "a list has more than 100000 pages")]
    fn a_list_without_an_end_fails() {
        let mut pages = Pages::default();
        while pages.next_token().is_some() {
            pages.read("again".into());
        }
    }
}
