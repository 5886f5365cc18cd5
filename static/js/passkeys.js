// Has the browser make passkeys and answer with them. Forms are sent as others are, once
// their field answer is filled in. Everything else works without it.
(() => {
  'use strict';
  const bytes = text => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), letter => letter.charCodeAt(0));
  const text = buffer => btoa(Array.from(new Uint8Array(buffer), byte => String.fromCharCode(byte)).join(''))
    .replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  const named = list => (list || []).map(credential => ({ ...credential, id: bytes(credential.id) }));

  const say = (form, what) => form.querySelectorAll('[data-say]').forEach(line => { line.hidden = line.dataset.say !== what; });

  // What the browser is asked stands in the page, or is asked for now: it is good for
  // some minutes only.
  const optionsOf = async form => {
    if (form.dataset.options) return JSON.parse(form.dataset.options).publicKey;
    const answer = await fetch(form.dataset.optionsUrl, { method: 'POST', credentials: 'same-origin' });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return (await answer.json()).publicKey;
  };

  const create = async options => {
    const made = await navigator.credentials.create({ publicKey: {
      ...options, challenge: bytes(options.challenge), user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: named(options.excludeCredentials),
    } });
    return [made, {
      clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject),
      transports: made.response.getTransports ? made.response.getTransports() : [],
    }];
  };

  const get = async options => {
    const used = await navigator.credentials.get({ publicKey: {
      ...options, challenge: bytes(options.challenge), allowCredentials: named(options.allowCredentials),
    } });
    return [used, {
      clientDataJSON: text(used.response.clientDataJSON), authenticatorData: text(used.response.authenticatorData),
      signature: text(used.response.signature), userHandle: used.response.userHandle ? text(used.response.userHandle) : undefined,
    }];
  };

  const fill = async form => {
    const field = form.elements.answer, button = form.querySelector('button');
    if (button.disabled) return;
    button.disabled = true;
    say(form, '');
    try {
      const options = await optionsOf(form);
      const [credential, response] = await (form.dataset.passkey === 'create' ? create(options) : get(options));
      field.value = JSON.stringify({
        id: credential.id, rawId: text(credential.rawId), type: credential.type, response,
        authenticatorAttachment: credential.authenticatorAttachment || undefined,
        clientExtensionResults: credential.getClientExtensionResults(),
      });
      button.disabled = false;
      form.requestSubmit();
    } catch (error) {
      button.disabled = false;
      say(form, { NotAllowedError: 'ended', AbortError: 'ended', InvalidStateError: 'known', SecurityError: 'elsewhere' }[error.name] || 'failed');
    } finally {
      field.value = '';
    }
  };

  const enhance = () => document.querySelectorAll('form[data-passkey]').forEach(form => {
    if (window.PublicKeyCredential && navigator.credentials) return;
    form.querySelector('button').hidden = true;
    say(form, 'missing');
  });

  // Before htmx, which sends the form once there is an answer in it.
  document.addEventListener('submit', event => {
    const form = event.target;
    if (!form.matches('form[data-passkey]') || form.elements.answer.value) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    fill(form);
  }, true);
  document.addEventListener('htmx:after:swap', enhance);
  enhance();
})();
