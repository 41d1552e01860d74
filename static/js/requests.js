// What every request shares: a failed one says so in place, an old token is renewed.

const NOT_SENT = "Could not reach the server. Nothing was lost; try again.";
const NOT_DONE = "The server could not do this. Try again, or see its log.";

function showTrouble(event, text) {
  const place = event.detail.target;
  if (!place || place === document.body) return;
  const template = document.getElementById("trouble");
  const notice = template.content.cloneNode(true);
  notice.querySelector("p").textContent = text;
  place.replaceChildren(notice);
}

document.addEventListener("htmx:sendError", (event) => showTrouble(event, NOT_SENT));
document.addEventListener("htmx:timeout", (event) => showTrouble(event, NOT_SENT));
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status >= 500) showTrouble(event, NOT_DONE);
});

// The answer to a request with an old token carries a new one; a second press works.
document.addEventListener("token-renewed", (event) => {
  const headers = { "X-CSRFToken": event.detail.token };
  document.body.setAttribute("hx-headers", JSON.stringify(headers));
  for (const field of document.querySelectorAll("[name=csrfmiddlewaretoken]")) {
    field.value = event.detail.token;
  }
});

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt;
  if (event.detail.successful && form.matches("form[data-reset]")) form.reset();
  // What was said about an earlier try does not stay after one that worked.
  const place = event.detail.target;
  if (event.detail.xhr?.status === 204 && place?.matches("[data-answers]")) {
    place.replaceChildren();
  }
});
