// Pipelines as flows: nodes in nested lists, with edges drawn by CSS. See flow.py for the properties.
export default {
  template: `
    <div class="flows">
      <div v-for="flow in flows" :key="flow.name" class="card part flow" role="group" :aria-label="'pipeline ' + flow.name">
        <div class="tools">
          <a class="subtitle" :href="flow.href">{{ flow.name }}</a>
          <span :class="flow.level ? ['level', flow.level] : 'muted'">{{ flow.state }}</span>
        </div>
        <div v-if="flow.error" :class="['level', flow.error_level]"><span class="wrap">{{ flow.error }}</span></div>
        <div v-if="flow.queries.length" class="flow-row">
          <ul class="flow-list" aria-label="sources">
            <li v-for="source in flow.sources" :key="source.name" class="node source">
              <a v-if="source.href" :href="source.href">{{ source.name }}</a>
              <span v-else>{{ source.name }}</span>
              <dl><div v-for="fact in source.facts"><dt>{{ fact.name }}</dt><dd>{{ fact.text }}</dd></div></dl>
            </li>
          </ul>
          <ul class="flow-list branches" aria-label="queries">
            <li v-for="query in flow.queries" :key="query.name" class="branch flow-row">
              <div class="edge"><span>{{ query.edge }}</span></div>
              <div class="node query">
                <span :class="query.level && ['level', query.level]">{{ query.name }}</span>
                <dl><div v-for="fact in query.facts"><dt>{{ fact.name }}</dt>
                  <dd :class="fact.level && ['level', fact.level]">{{ fact.text }}</dd></div></dl>
              </div>
              <ul class="flow-list branches" :aria-label="'outputs of ' + query.name">
                <li v-for="output in query.outputs" :key="output.name" class="branch flow-row">
                  <div class="edge"><span>{{ output.edge }}</span></div>
                  <div class="node output"><span>{{ output.name }}</span>
                    <span :class="output.level ? ['level', output.level] : 'muted'">{{ output.text }}</span></div>
                </li>
              </ul>
            </li>
          </ul>
        </div>
      </div>
    </div>
  `,
  props: { flows: Array },
};
