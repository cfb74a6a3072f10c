/** Chat templates that can be chosen by name, for models that bring none or a wrong one. */

const generationTurn = (text: string) => `{%- if add_generation_prompt -%}{{ ${text} }}{%- endif -%}`;

const templates = {
  chatml: `
{%- for message in messages -%}
  {{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
${generationTurn("'<|im_start|>assistant\\n'")}`,

  llama2: `
{%- set state = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set state.system = '<<SYS>>\\n' + message.content + '\\n<</SYS>>\\n\\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{ ' ' + message.content + ' ' + eos_token }}
  {%- else -%}
    {{ bos_token + '[INST] ' + state.system + message.content + ' [/INST]' }}
    {%- set state.system = '' -%}
  {%- endif -%}
{%- endfor -%}`,

  llama3: `
{{- bos_token -}}
{%- for message in messages -%}
  {{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor -%}
${generationTurn("'<|start_header_id|>assistant<|end_header_id|>\\n\\n'")}`,

  mistral: `
{{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{ raise_exception('this template has no place for a system message') }}
  {%- elif message.role == 'assistant' -%}
    {{ ' ' + message.content | trim + eos_token }}
  {%- else -%}
    {{ '[INST] ' + message.content + ' [/INST]' }}
  {%- endif -%}
{%- endfor -%}`,

  gemma: `
{{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{ raise_exception('this template has no place for a system message') }}
  {%- endif -%}
  {{ '<start_of_turn>' + ('model' if message.role == 'assistant' else 'user') + '\\n' + message.content | trim + '<end_of_turn>\\n' }}
{%- endfor -%}
${generationTurn("'<start_of_turn>model\\n'")}`,
} as const;

/** Names that `--chat-template` takes. */
export const builtinTemplateNames: readonly string[] = Object.keys(templates);

/** A template by its name; undefined for an unknown name. */
export function builtinTemplate(name: string): string | undefined {
  return Object.hasOwn(templates, name) ? templates[name as keyof typeof templates] : undefined;
}

/** What a model without a template of its own is served with. */
export const defaultTemplateName = "chatml";
